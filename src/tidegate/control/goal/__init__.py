"""The goal loop: measurements in, levels of shedding out. A level is, for example, the probe ratio of a join.

goal_loop.py           the loop, once a batch; goal_step.py and goal_values.py: what passes through it
level_controller.py    decides the levels, from the parts below

load_model.py          1 load model: time of a batch, and the margin for its errors; cost_model.py: one cost
forecast.py            2 forecast: rows of the next batch; work_forecast.py: its work; backpressure.py: limits
optimiser.py           3 optimiser: levels with the least weighted loss within the time budget
shed_options.py          what each mechanism can save, and what that loses
hysteresis.py          4 hysteresis: when levels ease
warm_up.py               whether a process still warms up

control_state.py       what the loop remembers; control_tuning.py: all of its numbers

Part 5, the actuators, is in `control/actuators/`.
"""
