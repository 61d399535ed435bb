"""What a change of the flow between two runs means for the state: names, and operators that come and go."""
