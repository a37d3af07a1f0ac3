"""Writers of small files in other tools' formats, so that every test input is built in code."""
