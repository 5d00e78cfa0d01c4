package cuda

// Targets of the rows.
var HandedOver, OfDriver, OfBandwidth, Nothing = handedOver, ofDriver, ofBandwidth, nothing
