// Package pixeltest contains helpers for tests of decoders. For each file in testdata there is a
// record of the pixels that Pillow decodes.
package pixeltest
