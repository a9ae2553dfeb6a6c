"""The data of the language: types, shapes, layouts, literals, instructions, modules, op declarations."""
