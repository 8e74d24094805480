"""Pictures of plain numbers: what notebooks and pages show. Nothing here knows a program."""
