package turns

// fence is the guard of what is written about the reply as its row was read.
func (r Reply) fence(key ConversationKey) Fence {
	return Fence{Key: key, Reply: r.ID, Epoch: r.Epoch, Owner: r.Owner}
}

// under reports whether the row still has the epoch and owner of a fence.
func (r Reply) under(f Fence) bool { return r.Epoch == f.Epoch && r.Owner == f.Owner }

// goOn runs the reply under another epoch and owner from now on, with so much of its log stored. The caller holds mu.
func (r *run) goOn(epoch int64, owner WorkerID, stored uint32) {
	r.fence.Epoch, r.fence.Owner = epoch, owner
	r.reply.Epoch, r.reply.Owner, r.stored = epoch, owner, stored
	r.log.Renewed(epoch)
}
