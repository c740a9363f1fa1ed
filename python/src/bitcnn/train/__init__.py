"""Binary networks trained on one's own photos.

    python -m bitcnn.train PHOTOS -o my.bcnn

PHOTOS holds a folder for each class. It needs the extra ``train`` of the package.
"""
