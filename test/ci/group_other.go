//go:build !unix

package main

import "os/exec"

func setGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) bool { return false }
