// Package vision converts pickled data sets and transforms of torchvision to their Go counterparts.
//
// A pickle is untrusted input, so the package checks every attribute that it uses. If Go would
// produce other samples than Python, it refuses the object with an error that names it and lists
// the supported alternatives. The package opens no files, except the images of an ImageFolder when
// a sample is read. See https://github.com/pytorch/vision/tree/v0.24.0/torchvision.
package vision
