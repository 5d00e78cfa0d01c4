// Package doctor diagnoses the CUDA driver and its devices. It tries all mechanisms for sharing
// memory and events between processes, and advises the user if one is refused.
package doctor
