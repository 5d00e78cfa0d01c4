// Package doctor looks at CUDA's driver and its devices, tries every way by which processes share
// memory and events, and says what to do where one is refused.
package doctor
