// Package pixeltest is what the tests of decoders share: files in testdata, and beside each what
// Pillow decoded of it.
package pixeltest
