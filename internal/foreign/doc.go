// Package foreign is what package tensor does for the packages of this module that bring memory
// from elsewhere, such as files and the regions of PyTorch, and users do not see.
package foreign
