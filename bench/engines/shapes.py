"""What the engines are timed with."""

# 3x3 convolutions of VGG-16, as BitFlow times them: size of the image, input and output
# channels.
LAYERS = {
    "conv2.1": (112, 64, 128),
    "conv3.1": (56, 128, 256),
    "conv4.1": (28, 256, 512),
    "conv5.1": (14, 512, 512),
}

# Networks of larq-zoo.
ZOO = [
    "BiRealNet", "BinaryResNetE18", "QuickNetSmall", "QuickNet", "QuickNetLarge",
    "BinaryDenseNet28", "RealToBinaryNet", "MeliusNet22",
]
