// Package vision makes torchvision's data sets and transforms, as they stand in a pickle, Go's own.
//
// A pickle comes from outside, so every attribute is looked at, and an object is refused by name
// where Go would make other samples than Python: the refusal says what is known instead. Nothing
// here opens a file, but for the images of an ImageFolder when they are asked for.
package vision
