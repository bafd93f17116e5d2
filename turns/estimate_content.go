package turns

// What media take of a window, in tokens. No vendor counts them by their bytes, and each counts them in its own way, so
// these are flat and rather too high than too low for what the vendors say of most models: Anthropic's take up to 1,568 for
// an image, by its pixels (the largest ones up to 4,784 where they are not scaled down), and 1,500 to 3,000 for a page of a
// PDF; OpenAI's up to about 1,500 for an image of fine detail; Gemini's 258 for a tile of an image or a page, and 1,120 at
// most for an image of the newer ones.
const (
	imageTokens = 1600
	pageTokens  = 2000
	// bytesPerPage is a middle value for a PDF of text with some figures. A scanned page takes more, so that many small
	// pages and few large ones come out alike.
	bytesPerPage = 64 << 10
	// linkedTokens stands for a document behind a URL, of which nothing is known: ten pages.
	linkedTokens = 10 * pageTokens
	// mediaPDF is counted by its pages; every other document is text.
	mediaPDF = "application/pdf"
)

// EstimateContent estimates what content takes of a model's window, in tokens: text by its bytes, media by the flat figures
// of this file. What comes back to its vendor sealed is counted by the bytes of its seal.
func EstimateContent(content []Block) int64 {
	var tokens int64
	text := 0
	for _, b := range content {
		switch b := b.(type) {
		case Image:
			tokens += imageTokens
		case Document:
			text += len(b.Title)
			tokens += documentTokens(b)
		case ToolResult:
			tokens += EstimateContent(b.Content)
		default:
			text += SizeOf([]Block{b})
		}
	}
	return tokens + EstimateTokens(text)
}

// documentTokens is what a document takes besides its title.
func documentTokens(d Document) int64 {
	switch {
	case d.URL != "":
		return linkedTokens
	case d.MediaType == mediaPDF:
		return pageTokens * int64(1+len(d.Data)/bytesPerPage)
	}
	return EstimateTokens(len(d.Data))
}
