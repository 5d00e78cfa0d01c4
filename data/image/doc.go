// Package image decodes and transforms images. The pixels are the same as from torchvision with
// Pillow.
//
//	train := image.Pipeline{
//		image.RandomResizedCrop{H: 224, W: 224},
//		image.RandomHorizontalFlip(0.5),
//		image.ColorJitter{Brightness: 0.4, Contrast: 0.4},
//		image.Normalize{Mean: image.MeanOfImageNet, Std: image.StdOfImageNet},
//	}
//
// A [Step] is a value, so a [Pipeline] can be sent to worker processes. A random step draws from
// the generator passed by its caller, never from a global one. datasets.ImageFolder passes a
// separate generator for each sample, so the pixels depend only on the seed, the epoch and the
// sample.
//
// An image consists of planes of bytes, one for each channel, until a [Normalize] converts them to
// float32. The last step writes directly into the row of the batch.
//
// Sizes are given as height, then width, as in torch. Note that Pillow uses the opposite order.
package image
