"""The values that the rest of `bringup` passes around; they import nothing but each other."""
