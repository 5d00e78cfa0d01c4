// Package device is what package tensor and the packages that have devices agree on, and users need
// not see: the table of elementwise operations, and the registration of a kind of device.
package device
