"""The ECG role: R peaks, 11 features and a beat class for each heart beat of a block of samples.

The arithmetic is :mod:`trebuchet.models.ecg.model`, bit for bit; its docstring is the data sheet
whose step numbers the modules here refer to. Source: sopc-cloud-platform, 5.2.
"""
