// Package device defines the interface between package tensor and the packages that implement
// devices, hidden from users: the table of elementwise operations, the computations and the memory
// of a device, and the registration of kinds of devices.
package device
