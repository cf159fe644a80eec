"""What a label reveals of its variable: level sets, branches, label maps and their moments."""
