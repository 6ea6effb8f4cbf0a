"""Features to train on: functions of one record each, which cost nothing, and their mean, which is charged.

morlet        wavelets and averages, the filters of scattering
scattering    images as averages of absolute values of their wavelet transforms
normalizing   features of each example brought to one size
centering     the mean of private features, with noise, to take off them
"""
