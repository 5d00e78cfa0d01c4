// Package vision converts torchvision's data sets and transforms, as a pickle has them, to Go's
// own.
//
// A pickle comes from outside, so the package looks at every attribute. If Go would make other
// samples than Python, it refuses the object by name, and the error says what the package knows. It
// opens no file, except the images of an ImageFolder when a sample is read.
package vision
