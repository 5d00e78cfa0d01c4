// Package device is what package tensor and the packages that have devices agree on, and users need
// not see: the table of elementwise operations.
package device
