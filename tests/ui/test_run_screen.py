"""The run screen shows what the journal says, and its keys reach the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from steps.engine.progress import Work
from steps.model.action import Run
from steps.model.base import phrase
from steps.model.run import RunStatus
from steps.model.verdict import Rung
from steps.text import Language
from tests.ui.fake_run import START, FakeRun, asking, by_hand, failed, halfway, real, rebooting
from tests.ui.run_pilot import NOW, Watching, picture, shows, until
from tui.cells import width
from tui.screens.verify import VerifyScreen
from tui.watching import focus

pytestmark = pytest.mark.ui


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("make", [halfway, failed, asking, rebooting, by_hand])
async def test_every_row_fills_the_window_and_nothing_more(tmp_path: Path, make: Callable[[Path], FakeRun], language: Language) -> None:
    app = Watching(make(tmp_path), language=language)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(picture(app)) == 24)
        assert [width(row) for row in picture(app)] == [80] * 24


@pytest.mark.parametrize("size", [(120, 40), (79, 20), (60, 18)])
async def test_other_windows_keep_the_state_and_the_keys(tmp_path: Path, size: tuple[int, int]) -> None:
    for number, make in enumerate((halfway, failed, asking)):
        app = Watching(make(tmp_path / str(number)))
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda app=app: len(picture(app)) == size[1] and shows(app, "? help", " of 9 "))  # type: ignore[misc]  # bound at once
            assert {width(row) for row in picture(app)} == {size[0]}


async def test_plain_marks_use_ascii_alone_and_move_nothing(tmp_path: Path) -> None:
    app = Watching(halfway(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "▸ running"))
        before = picture(app)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: shows(app, "> running"))
        after = picture(app)
        assert all(row.isascii() for row in after)
        assert [row.find("Kernel headers") for row in after] == [row.find("Kernel headers") for row in before]


async def test_the_list_says_what_is_done_and_what_runs(tmp_path: Path) -> None:
    app = Watching(real(halfway(tmp_path)))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "Building initial module"))
        rows = picture(app)
        assert "run 1130-a" in rows[0]
        assert rows[0].rstrip().endswith("running · safe to leave")
        assert rows[2].startswith(" ✓ done      1 Return point saved                0:21")
        assert rows[4].startswith(" ▸ running   3 Driver 580 open, module by DKMS   4:12   usually 12 min")
        assert "following · 2,114 lines" in rows[11]
        assert rows[20].startswith(" 3 of 9   6:55 gone, about")


async def test_a_build_on_the_way_back_is_counted_and_called_normal(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    run.action("driver.install", "done", started=163, seconds=400)
    run.action("frameworks.environment", "undone", started=315, seconds=100)
    run.works["driver.install"] = Work(phase="install", percent=100, objects=12, of=193, stirred=NOW + 100)
    run.now_is("undoing")
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "Taking back", "Building initial module"))
        app.now = NOW + 120
        await until(
            pilot, lambda: shows(app, "last output 2:00 ago", "the module is built, 12 of 193 objects are done", "undoing · safe to leave")
        )


def test_an_undo_is_looked_at_where_it_is_at_work(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    run.action("driver.install", "done", started=163, seconds=400)
    run.action("frameworks.environment", "undone", started=315, seconds=900)
    run.now_is("undoing")
    assert run.plan.actions[focus(run.plan, run.state())].id == "driver.install"
    run.action("driver.install", "undone", started=163, seconds=1000)
    assert run.plan.actions[focus(run.plan, run.state())].id == "driver.headers"


async def test_silence_is_called_normal_until_it_is_not(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "following"))
        app.now = NOW + 130
        await until(pilot, lambda: shows(app, "last output 2:10 ago", "· Silence is normal: DKMS prints nothing for 4 to 12 minutes."))
        app.now = NOW + 730
        await until(pilot, lambda: shows(app, "! No output for 12:10, usual is 12:00", "quiet for long"))
        # A slow machine compiles for longer than that, and its build says so in a log of its own.
        run.works["driver.install"] = Work(phase="install", percent=20, objects=66, of=192, stirred=app.now - 20)
        await until(pilot, lambda: shows(app, "66 of 192 objects are done", "safe to leave"))
        run.works["driver.install"] = Work(phase="install", percent=20, objects=66, of=192, stirred=app.now - 721)
        await until(pilot, lambda: shows(app, "! No output for 12:10", "quiet for long"))
        run.print("driver.install", b"DKMS: install completed.\n")
        await until(pilot, lambda: shows(app, "last output 0:00 ago", "safe to leave"))


async def test_leaving_keeps_the_run_and_says_how_to_come_back(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "following"))
        await pilot.press("q")
    assert app.return_code == 0
    assert run.told == []


async def test_scrolling_up_stops_following_and_end_follows_again(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "following · 2,114 lines"))
        await pilot.press("pageup")
        await until(pilot, lambda: shows(app, "2,107 of 2,114 · End follows"))
        run.print("driver.install", b"one more line\n")
        await until(pilot, lambda: shows(app, "2,107 of 2,115"))
        assert not shows(app, "one more line")
        await pilot.press("home")
        await until(pilot, lambda: shows(app, "Unpacking package-0 ...", "8 of 2,115"))
        await pilot.press("end")
        await until(pilot, lambda: shows(app, "one more line", "following · 2,115 lines"))


async def test_search_finds_backwards_and_onwards(tmp_path: Path) -> None:
    app = Watching(halfway(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "following"))
        await pilot.press("/", *"package-19", "enter")
        await until(pilot, lambda: shows(app, "Unpacking package-1999 ..."))
        await pilot.press("enter")
        await until(pilot, lambda: shows(app, "Unpacking package-1998 ..."))
        await pilot.press("escape", "/", *"no such thing", "enter")
        await until(pilot, lambda: shows(app, "not found"))


async def test_the_full_log_takes_the_lists_place(tmp_path: Path) -> None:
    app = Watching(halfway(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "following"))
        await pilot.press("l")
        await until(pilot, lambda: not shows(app, "Return point saved") and shows(app, "package-2099"))
        await pilot.press("escape")
        await until(pilot, lambda: shows(app, "Return point saved"))


async def test_a_digit_shows_the_log_of_another_step(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    run.print("frameworks.environment", b"Resolved 31 packages\n")
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "log of 3"))
        await pilot.press("6")
        await until(pilot, lambda: shows(app, "log of 6", "Resolved 31 packages"))
        await pilot.press("end")
        await until(pilot, lambda: shows(app, "log of 3"))


async def test_pause_and_go_on(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "following"))
        await pilot.press("p")
        run.now_is("paused")
        await until(pilot, lambda: shows(app, "2 of 9 done. p goes on."))
        await pilot.press("p")
        await until(pilot, lambda: run.told == [("pause",), ("proceed",)])


@pytest.mark.parametrize(
    ("language", "words"), [("en", ("Queued: run 1130-a does not answer", "kill -CONT")), ("zh_CN", ("没有应答", "已排队", "kill -CONT"))]
)
async def test_a_pause_that_a_stopped_runner_has_not_heard_yet_is_said_to_wait(
    tmp_path: Path, language: Language, words: tuple[str, ...]
) -> None:
    run = halfway(tmp_path)
    run.refuses = "run-queued"
    app = Watching(run, language=language)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "p "))
        await pilot.press("p")
        await until(pilot, lambda: shows(app, *words))


async def test_stop_wants_its_word(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "following"))
        await pilot.press("x", *"stopp", "enter")
        await until(pilot, lambda: shows(app, "Nothing was done. Type stop, or Esc."))
        assert run.told == []
        await pilot.press("escape", "x", *"stop", "enter")
        await until(pilot, lambda: run.told == [("cancel",)])


async def test_undo_wants_its_word_and_is_shown_going_backwards(tmp_path: Path) -> None:
    run = real(failed(tmp_path))
    run.now_is("cancelled", code=5, ended=START + 400)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "stopped by you"))
        await pilot.press("u", *"undo", "enter")
        await until(pilot, lambda: run.told == [("undo",)])
        run.has_runner = True
        run.action("frameworks.environment", "undone", started=315, seconds=140)
        run.now_is("undoing")
        await until(pilot, lambda: shows(app, "undoing · safe to leave", "✓ undone    6"))
        run.now_is("undone", code=0, ended=START + 500)
        await until(pilot, lambda: shows(app, "Undone. The machine is as it was"))


@pytest.mark.parametrize(("status", "says"), [("undo-failed", "Enter tries again"), ("undoing", "Enter goes on with the undo")])
async def test_enter_goes_on_with_an_undo_that_stopped_and_never_with_its_run(tmp_path: Path, status: RunStatus, says: str) -> None:
    run = real(failed(tmp_path))
    run.now_is(status, code=22 if status == "undo-failed" else None, ended=START + 400 if status == "undo-failed" else None)
    run.has_runner = False
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, says, "undo tries again"))
        await pilot.press("enter", *"undo", "enter")
        await until(pilot, lambda: run.told == [("undo",)])


async def test_a_paused_run_is_left_paused(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    run.now_is("paused")
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "q leave, stays paused"))
        assert not shows(app, "run goes on")
        assert "stays paused" in app.screen.words_at_the_end()  # type: ignore[attr-defined]  # the run's screen


async def test_what_an_undo_keeps_is_counted_beside_what_it_takes_back(tmp_path: Path) -> None:
    run = real(failed(tmp_path))
    run.back = 3
    run.now_is("cancelled", code=5, ended=START + 400)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "stopped by you"))
        await pilot.press("u")
        await until(pilot, lambda: shows(app, "Undo takes back 3 steps"))
        await pilot.press("escape")
        for action in ("driver.headers", "driver.install", "frameworks.environment"):
            run.action(action, "undone", started=22, seconds=38)
        run.action("system.return", "kept", started=0, seconds=21)
        run.now_is("undone", code=0, ended=START + 500)
        await until(pilot, lambda: shows(app, "3 steps taken back, 1 left as is"))


async def test_what_no_undo_takes_back_is_said_in_place_of_all_is_as_it_was(tmp_path: Path) -> None:
    run = real(failed(tmp_path))
    left = Run(id="repair.finish", title="t", argv=("dpkg", "--configure", "-a"), stays="Packages stay configured.")
    run.plan = msgspec.structs.replace(run.plan, actions=(left, *run.plan.actions))
    run.action(left.id, "kept", started=0, seconds=21)
    run.action("driver.headers", "undone", started=22, seconds=38)
    run.now_is("undone", code=0, ended=START + 500)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "Packages stay configured.", "All else is as it was."))
        assert not shows(app, "The machine is as it was")


@pytest.mark.parametrize("status", ["done", "cancelled", "failed"])
async def test_a_rehearsal_offers_no_undo(tmp_path: Path, status: RunStatus) -> None:
    run = failed(tmp_path)
    run.now_is(status, code=0, ended=START + 500)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, {"done": "Rehearsed.", "cancelled": "Stopped.", "failed": "Step 3 failed"}[status], "? help"))
        assert not shows(app, "u undo")
        assert not shows(app, "u  undo")
        await pilot.press("u")
        await pilot.pause()
        assert not shows(app, "Type undo")
        assert status == "failed" or shows(app, "Nothing was changed")


async def test_a_failure_says_why_and_the_ways_out(tmp_path: Path) -> None:
    run = failed(tmp_path)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "f  Install the compiler", "try step 3 again", "✓ advised"))
        await pilot.press("n")
        await until(pilot, lambda: run.told == [("skip", "driver.install")])
        await pilot.press("r")
        await until(pilot, lambda: run.told[-1] == ("retry", "driver.install"))
        await pilot.press("l")
        await until(pilot, lambda: shows(app, "make: *** [Makefile:2034] stop", "log of 3"))
        await pilot.press("escape", "q")
    assert app.return_code == 1


async def test_a_dead_runner_is_named_and_enter_goes_on(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    run.has_runner = False
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "stopped without an end", "The runner is gone"))
        await pilot.press("enter")
        await until(pilot, lambda: run.told == [("resume",)])


async def test_coming_back_says_that_nothing_was_lost(tmp_path: Path) -> None:
    app = Watching(halfway(tmp_path), attached=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "attached again", "✓ Nothing was lost: all 2,114 lines are here."))
        app.now += 11
        await until(pilot, lambda: shows(app, "safe to leave") and not shows(app, "Nothing was lost"))


async def test_an_error_of_the_run_is_said_and_the_screen_stays(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    run.refuses = "run-unknown"
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "following"))
        await pilot.press("p")
        await until(pilot, lambda: not shows(app, "Connection lost?"))


async def test_a_vanished_folder_ends_the_screen_with_a_sentence(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "following"))
        run.vanished = True
        for _ in range(100):
            await pilot.pause(0.05)
            if app.return_code is not None:
                break
    assert app.return_code == 2


async def test_a_reboot_is_asked_for_by_its_word(tmp_path: Path) -> None:
    app = Watching(rebooting(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "reboot needed", "Installed. One reboot, then the proof.", "loaded at the next boot"))
        await pilot.press("r", *"reboot", "enter")
        await until(pilot, lambda: shows(app, "bringup resume"))
        await pilot.press("q")
    assert app.return_code == 10


async def test_the_end_shows_the_proof(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "following"))
        run.rungs = (
            Rung(id="torch", state="passed", detail="2.15.0", because="sees 4 GPUs"),
            Rung(id="ddp", state="failed", detail="4 ranks", because="rank 2 ended with signal 7: /dev/shm is full"),
            Rung(id="p2p", state="skipped", because="not offered"),
        )
        run.now_is("failed", code=20, ended=START + 900)
        await until(pilot, lambda: isinstance(app.screen, VerifyScreen))
        await until(pilot, lambda: shows(app, "Done, not proven", "Verify · not proven", "rank 2 ended with signal 7"))
        await pilot.press("u")
        await until(pilot, lambda: shows(app, "Undo takes back", "Type undo and Enter"))
        await pilot.press("escape", "q")
    assert app.return_code == 20


async def test_a_proven_end_says_so_and_how_to_use_it(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    run.rungs = (
        Rung(id="environment", state="passed", because="/home/ana/envs/dl", detail="Python 3.12"),
        Rung(id="ddp", state="passed", because="2 ranks over gloo"),
        Rung(id="gpu", state="skipped", because="There is no GPU in this target."),
    )
    run.now_is("done", code=0, ended=START + 900)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "Done, and proven.", "15:00 in all", "✓ proven", "$ source /home/ana/envs/dl/bin/activate"))
        await pilot.press("down", "down")
        await until(pilot, lambda: shows(app, "There is no GPU in this target."))
        await pilot.press("escape")
        await until(pilot, lambda: shows(app, "Enter the proof"))
        await pilot.press("q")
    assert app.return_code == 0


async def test_a_long_command_of_the_proof_is_shown_whole(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    made = "/opt/bringup/envs/fine-tuning-2026"
    run.rungs = (Rung(id="environment", state="passed", because=made), Rung(id="ddp", state="passed", because="2 ranks over gloo"))
    run.now_is("done", code=0, ended=START + 900)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "Done, and proven.", "Use it"))
        right = "".join(row[40:].rstrip() for row in picture(app))
        assert f"$ source{made}/bin/activate" in right


async def test_an_end_without_steps_or_on_a_mounted_system_is_not_called_proven(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    good = Rung(id="module-file", state="passed", because="/lib/modules/6/nvidia.ko")
    mounted = Rung(id="module", state="skipped", because=phrase("verify.because.mounted"))
    run.rungs = (good, mounted)
    run.now_is("done", code=0, ended=START + 900)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "Installed; proven as far as a mounted system can be.", "Verify · not proven"))
        await pilot.press("q")
    run.rungs = (good,)
    run.action("toolkit.cuda", "skipped")
    run.now_is("done", code=1, ended=START + 900)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "Done without: CUDA toolkit 13.0", "Verify · not proven"))
        await pilot.press("q")
    assert app.return_code == 1


MEASURED = (
    Rung(id="environment", state="passed", because="/home/ana/envs/dl", detail="Python 3.12.4"),
    Rung(id="cuda", state="passed", detail="8 × sm_90", value=8, unit="GPUs"),
    Rung(id="nvcc-sample", state="passed", detail="sm_90"),
    Rung(id="cudnn-conv", state="passed", detail="9.10.2"),
    Rung(id="speed", state="passed", detail="7.9×", value=7.9, unit="×"),
    Rung(id="peers", state="passed", detail="371.2 GB/s", value=371.2, unit="GB/s"),
    Rung(id="bandwidth", state="failed", detail="240.1 GB/s", value=240.1, unit="GB/s", expected=360.0, because="240 GB/s"),
    Rung(id="burn", state="passed", detail="612 TFLOPS", value=612.0, unit="TFLOPS"),
)


@pytest.mark.parametrize(
    ("language", "rows"),
    [
        ("en", ("CUDA kernel  8 × sm_90    ✓ works", "GPU to GPU   371.2 GB/s   ✓ works", "All-reduce   █████████····│    240 GB/s")),
        ("zh_CN", ("CUDA 计算    8 × sm_90    ✓ 可用", "满载测试     612 TFLOPS   ✓ 可用", "半精度提速   █│████████████        7.9×")),
    ],
)
async def test_what_the_proof_measured_stands_as_bars_beside_the_rungs(tmp_path: Path, language: Language, rows: tuple[str, ...]) -> None:
    run = halfway(tmp_path)
    run.rungs = MEASURED
    run.now_is("failed", code=20, ended=START + 900)
    app = Watching(run, language=language)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, VerifyScreen))
        await until(pilot, lambda: shows(app, *rows))
        assert not any("…" in line[:38] for line in picture(app)[4:])
        assert shows(app, "g monitor" if language == "en" else "g 监视")


async def test_a_small_window_shrinks_to_the_state(tmp_path: Path) -> None:
    app = Watching(halfway(tmp_path))
    async with app.run_test(size=(50, 12)) as pilot:
        await until(pilot, lambda: shows(app, "3 of 9   6:55 gone"))
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: shows(app, "Building initial module"))


async def test_the_package_managers_own_progress_stands_beside_its_action(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    run.works["driver.install"] = Work(phase="download", percent=61.4)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "4:12   download 61 %"))
        run.works["driver.install"] = Work(phase="install", percent=20, objects=120)
        app.now += 60
        await until(pilot, lambda: shows(app, "usually 12 min", "Silence is normal while the module is built. 120 objects are compiled."))
        run.works["driver.install"] = Work(phase="install", percent=20, objects=1, of=192)
        app.now += 1
        await until(pilot, lambda: shows(app, "Silence is normal: the module is built, 1 of 192 objects are done."))


@pytest.mark.parametrize(("language", "words"), [("en", "6:55 gone, about 10 min left"), ("zh_CN", "已用 6:55，约剩 10 分钟")])
async def test_the_status_line_says_how_long_is_left_the_same_after_coming_back(tmp_path: Path, language: Language, words: str) -> None:
    run = real(halfway(tmp_path))
    run.works["driver.install"] = Work(phase="install", percent=60.0, objects=96, of=192, fetching=20.0)
    for attached in (False, True):
        app = Watching(run, language=language, attached=attached)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda app=app: shows(app, words))  # type: ignore[misc]  # bound at once


async def test_a_rehearsal_that_takes_seconds_says_nothing_of_the_minutes_of_its_plan(tmp_path: Path) -> None:
    app = Watching(halfway(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "6:55 gone   last output"))


async def test_what_nobody_can_know_is_said_to_be_unknown(tmp_path: Path) -> None:
    run = real(halfway(tmp_path))
    app = Watching(run, now=START + 163 + 2 * 480 + 90)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "20:13 gone, time left unknown"))
