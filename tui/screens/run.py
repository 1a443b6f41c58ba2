"""The screen of a run: its keys, its questions, and the ways out when something failed."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from steps.model.base import phrase
from steps.text import say
from tui.follow import exit_code
from tui.screens.base import Key, event_name
from tui.screens.prompt import dialog_keys
from tui.screens.run_acts import RunActs
from tui.screens.run_keys import ANSWERING, DIALOG, SEARCHING, TYPED_WORD, keys_of
from tui.screens.run_panes import Ask, ways_out
from tui.screens.run_seen import face
from tui.screens.verify import VerifyScreen
from tui.watching import ENDED, Watched, of
from tui.widgets.answer_field import AnswerField


class RunScreen(RunActs):
    """One run, watched; leaving it never stops the run."""

    def key_table(self) -> Sequence[Key]:
        """Return the keys of what is shown."""
        seen = self.seen
        if self._ask is not None:
            return TYPED_WORD
        if self._searching:
            return SEARCHING
        if self._question is not None and not self._full:
            if self._question.is_dialog:
                return DIALOG
            if self.takes_letters:
                return ANSWERING
        return keys_of(seen, full=self._full, proof=self._proof is not None, repair=self.told is not None)

    def perform(self, action: str) -> None:
        """Do what a key says; a remark stands until the next key."""
        self._said = ""
        self._back_at = None
        super().perform(action)

    def remark(self, sentence: str) -> None:
        """Say a sentence above the keys until the next key."""
        self._said = sentence

    # --- letters --------------------------------------------------------------------------------------

    def typing(self, event: events.Key) -> bool:
        """Give the key to the open field, question or dialog, or to the log; return whether it was theirs."""
        if event.key in ("ctrl+q", "ctrl+c") and not (self._question and self._question.is_dialog):
            return False
        if self._ask is not None:
            self._type_word(self._ask, event)
            return True
        if self._searching:
            self._type_search(event)
            return True
        if self._question is not None and not self._full:
            return self._type_answer(event)
        return self._move(event)

    def on_paste(self, event: events.Paste) -> None:
        """Take pasted text into the open field."""
        event.stop()
        if self._ask is not None or self._searching:
            self._field.paste(event.text)
        elif self._question is not None and self._question.seen and self._question.typed and not self._full:
            self._question.field.paste(event.text)
        self.redraw()

    def _type_word(self, ask: Ask, event: events.Key) -> None:
        """Take a letter of the typed word; Enter does it when the word is right, and nothing otherwise."""
        if event.key == "escape":
            self._ask = None
        elif event.key == "enter":
            if self._field.text.strip() == ask.word:
                self._ask = None
                self._do_typed(ask)
            else:
                self._refused, self._field = True, AnswerField()
        else:
            self._field.take(event)

    def _type_search(self, event: events.Key) -> None:
        """Take a letter of the search; Enter and up look further back, down onwards."""
        if event.key == "escape":
            self._searching = False
            self.pane.forget()
        elif event.key in ("enter", "up", "down"):
            self.pane.search(self._field.text, back=event.key != "down")
        else:
            self._field.take(event)
            self.pane.forget()

    def _type_answer(self, event: events.Key) -> bool:
        """Give a key to the question; those that came before it was painted are dropped."""
        question = self._question
        if question is None:
            return False
        if not question.seen:
            return event_name(event) not in ("q", "?", "f1")
        if question.is_dialog:
            if event.key == "f10":
                self._full = True
            elif (data := dialog_keys(event)) is not None:
                self._try(lambda: self.handle.keys(question.prompt.seq, data))
            return True
        if question.typed and self._typing and event.key == "escape":
            self._typing = False
            return True
        if event.key == "enter" and question.typed and not self._typing:
            self._typing = True
            return True
        if (question.typed and self._typing) or event.key in ("enter", "up", "down", "j", "k") or (event.character or "").isdigit():
            answer = question.key(event)
            if answer is not None:
                self._try(lambda: self.handle.answer(question.prompt.seq, answer))
            return True
        return False

    def _move(self, event: events.Key) -> bool:
        """Move in the ways out of a failure, in the log, or to the log of another action."""
        if face(self.seen) == "failed" and not self._full and event.key in ("up", "down", "j", "k"):
            step = 1 if event.key in ("down", "j") else -1
            self._cursor = max(0, min(self._cursor + step, len(ways_out(self.seen, self.told)) - 1))
            return True
        if event.character and event.character in "123456789":
            self._pin(int(event.character) - 1)
            return True
        if event.key == "end":
            self._pinned = None
        return self.pane.display and self.pane.handle(event.key)

    def _pin(self, index: int) -> None:
        """Keep to the log of one action."""
        if index < len(self.handle.plan.actions):
            self._pinned = index
            self._choose_log(index)
            if face(self.seen) in ("failed", "reboot"):
                self._full = True

    # --- acting ---------------------------------------------------------------------------------------

    def do_nothing(self) -> None:
        """Do nothing: the key was taken before."""

    def do_leave(self) -> None:
        """Leave; the run goes on."""
        state = self._state
        if state.status in ENDED or self._gone:
            code = exit_code(state, self._gone)
            self.app.exit(code, code)
        else:
            self.app.exit(0, 0, self.words_at_the_end())

    def words_at_the_end(self) -> str:
        """Return how to come back to the run; "" when it is over."""
        if self._state.status in ENDED or self._gone:
            return ""
        return say(self.shell.language, phrase("run.leaving-paused" if self._state.status == "paused" else "run.leaving"))

    def do_log(self) -> None:
        """Open the full log, or close it."""
        self._full = not self._full

    def do_close_over(self) -> None:
        """Close the full log."""
        self._full = False

    def do_search(self) -> None:
        """Open the search field."""
        if face(self.seen) in ("failed", "reboot") or self.shell.low_bandwidth:
            self._full = True
        self._searching, self._field = True, AnswerField()

    def do_other(self) -> None:
        """Show the log of the next action that has one."""
        actions = self.handle.plan.actions
        begun = [at for at, action in enumerate(actions) if of(self._state, action.id).started is not None]
        if begun:
            now = next((at for at, action in enumerate(actions) if action.id == self._shown), -1)
            self._pin(next((at for at in begun if at > now), begun[0]))

    def do_save(self) -> None:
        """Say where the log lies, and copy its path."""
        path = f"{self.handle.folder}/output/{self._shown}.log"
        self.app.copy_to_clipboard(path)
        self.remark(say(self.shell.language, phrase("run.saved", path=path)))

    def do_pause(self) -> None:
        """Pause before the next action, or go on."""
        self._order(self.handle.proceed if self._state.status == "paused" else self.handle.pause)

    def do_stop(self) -> None:
        """Ask for the word that stops the run."""
        self._open_ask(Ask("stop", "cancel"))

    def do_undo(self) -> None:
        """Ask for the word that takes the run back."""
        said = self._said_of(lambda: self._open_ask(Ask("undo", "undo", self.handle.goes_with_undo(), self.handle.goes_back())))
        if said:
            self.remark(said)

    def do_reboot(self) -> None:
        """Ask for the word that reboots the machine."""
        self._open_ask(Ask("reboot", "reboot"))

    def _open_ask(self, ask: Ask) -> None:
        """Open a typed word, never preset."""
        self._ask, self._refused, self._field, self._full = ask, False, AnswerField(), False

    def _do_typed(self, ask: Ask) -> None:
        """Do what was typed."""
        match ask.action:
            case "cancel":
                self._order(self.handle.cancel)
            case "undo":
                self._launch(lambda asks: self.handle.undo(sudo=asks))
            case _:
                self.remark(say(self.shell.language, phrase("run.reboot-yourself")))

    def do_take_way(self) -> None:
        """Take the way out that the cursor is on."""
        self.perform(ways_out(self.seen, self.told)[self._cursor].action)

    def do_answer(self) -> None:
        """Go back into the field."""
        self._typing, self._full = True, False

    def do_verdict(self) -> None:
        """Open the proof."""
        self.show_verdict()

    def show_verdict(self) -> bool:
        """Open the proof's screen in place of this one; return whether there is a proof."""
        if self._proof is None:
            return False
        self.app.switch_screen(VerifyScreen(self.handle, self._proof, reopened))
        return True


def reopened(handle: Watched, log: bool, undo: bool) -> RunScreen:
    """Return the screen of a run that is looked at again after its proof: with its full log, or asking for the undo word."""
    screen = RunScreen(handle, ended=True)
    if log:
        screen.do_log()
    if undo:
        screen.do_undo()
    return screen
