bitnet-signature: 2
