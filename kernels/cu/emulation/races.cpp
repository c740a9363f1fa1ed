// placeholder until the detector is written
