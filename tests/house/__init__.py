"""What import-linter cannot say by itself about the house: doors, floors and the size of a room."""
