"""What evolves: manifest, layers, skills, memory, tools, and the git repository of versions."""
