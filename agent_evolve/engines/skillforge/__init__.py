"""SkillForge, the default engine: a model edits the agent's files in the light of what happened.

engine      one step, from observations to an account of what changed
options     what a person may set
observed    which observations are worth showing       context   the prompt, within a budget
fence       data kept apart from instructions          wording   everything said to the model
shell       editing with a bash tool in the sandbox    answer    editing by one reply
reply       the reply's format, read line by line      staging   a reply applied in memory
tree        the files, as values                       changes   what changed, from the files
rules       what every changed tree must keep to       mending   what a model may forget
"""

from .engine import SkillForge

AEvolveEngine = SkillForge

__all__ = ["AEvolveEngine", "SkillForge"]
