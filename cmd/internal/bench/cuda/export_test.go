package cuda

// Targets of the rows.
var HandedOver, OfDriver, OfBandwidth, AsTorch, Nothing = transferTarget, driverTarget, bandwidthTarget,
	torchTarget, leakTarget
