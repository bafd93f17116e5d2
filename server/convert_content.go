package server

import (
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// contentFromWire reads blocks. The rules of the wire have been checked: each has its kind, each source is set. Which
// kinds may stand where is the domain's to say.
func contentFromWire(blocks []*turnsv1.Block) []turns.Block {
	if len(blocks) == 0 {
		return nil
	}
	out := make([]turns.Block, 0, len(blocks))
	for _, b := range blocks {
		out = append(out, blockFromWire(b))
	}
	return out
}

func blockFromWire(b *turnsv1.Block) turns.Block {
	switch k := b.GetKind().(type) {
	case *turnsv1.Block_Image:
		return turns.Image{MediaType: k.Image.GetMediaType(), Data: k.Image.GetData(), URL: k.Image.GetUrl()}
	case *turnsv1.Block_Document:
		d := k.Document
		return turns.Document{MediaType: d.GetMediaType(), Title: d.GetTitle(), Data: d.GetData(), URL: d.GetUrl()}
	case *turnsv1.Block_ToolUse:
		return turns.ToolUse{ID: k.ToolUse.GetToolUseId(), Name: k.ToolUse.GetName(), InputJSON: k.ToolUse.GetInputJson()}
	case *turnsv1.Block_ToolResult:
		r := k.ToolResult
		return turns.ToolResult{ToolUseID: r.GetToolUseId(), IsError: r.GetIsError(), Content: contentFromWire(r.GetContent())}
	case *turnsv1.Block_Thinking:
		return turns.Thinking{Text: k.Thinking.GetText(), Redacted: k.Thinking.GetRedacted()}
	case *turnsv1.Block_Refusal:
		return turns.Refusal{Text: k.Refusal.GetText(), Category: k.Refusal.GetCategory()}
	case *turnsv1.Block_Opaque:
		return turns.Opaque{Provider: k.Opaque.GetProvider(), Type: k.Opaque.GetType()}
	}
	return turns.Text{Text: b.GetText().GetText()}
}

// contentToWire writes blocks.
func contentToWire(content []turns.Block) []*turnsv1.Block {
	out := make([]*turnsv1.Block, 0, len(content))
	for _, b := range content {
		out = append(out, blockToWire(b))
	}
	return out
}

func blockToWire(b turns.Block) *turnsv1.Block {
	switch b := b.(type) {
	case turns.Text:
		return &turnsv1.Block{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: b.Text}}}
	case turns.Image:
		return &turnsv1.Block{Kind: &turnsv1.Block_Image{Image: imageToWire(b)}}
	case turns.Document:
		return &turnsv1.Block{Kind: &turnsv1.Block_Document{Document: documentToWire(b)}}
	case turns.ToolUse:
		return &turnsv1.Block{Kind: &turnsv1.Block_ToolUse{ToolUse: &turnsv1.ToolUseBlock{
			ToolUseId: b.ID, Name: b.Name, InputJson: b.InputJSON}}}
	case turns.ToolResult:
		return &turnsv1.Block{Kind: &turnsv1.Block_ToolResult{ToolResult: &turnsv1.ToolResultBlock{
			ToolUseId: b.ToolUseID, IsError: b.IsError, Content: contentToWire(b.Content)}}}
	case turns.Thinking:
		return &turnsv1.Block{Kind: &turnsv1.Block_Thinking{Thinking: &turnsv1.ThinkingBlock{Text: b.Text, Redacted: b.Redacted}}}
	case turns.Refusal:
		return &turnsv1.Block{Kind: &turnsv1.Block_Refusal{Refusal: &turnsv1.RefusalBlock{Text: b.Text, Category: b.Category}}}
	case turns.Opaque:
		return &turnsv1.Block{Kind: &turnsv1.Block_Opaque{Opaque: &turnsv1.OpaqueBlock{Provider: b.Provider, Type: b.Type}}}
	}
	return &turnsv1.Block{}
}

func imageToWire(b turns.Image) *turnsv1.ImageBlock {
	out := &turnsv1.ImageBlock{MediaType: b.MediaType, Source: &turnsv1.ImageBlock_Data{Data: b.Data}}
	if b.URL != "" {
		out.Source = &turnsv1.ImageBlock_Url{Url: b.URL}
	}
	return out
}

func documentToWire(b turns.Document) *turnsv1.DocumentBlock {
	out := &turnsv1.DocumentBlock{MediaType: b.MediaType, Title: b.Title, Source: &turnsv1.DocumentBlock_Data{Data: b.Data}}
	if b.URL != "" {
		out.Source = &turnsv1.DocumentBlock_Url{Url: b.URL}
	}
	return out
}
