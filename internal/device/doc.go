// Package device is what package tensor and the packages that have devices agree on, and users need
// not see: the table of elementwise operations, what a device computes and with which memory, and
// the registration of a kind of device.
package device
