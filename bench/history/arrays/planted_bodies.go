package arrays

// valid are the bodies that errors are planted into.
var valid = map[Wire]string{
	AnthropicMessages: `{"model":"m","max_tokens":4000,"system":[{"type":"text","text":"be kind"}],"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"first"},` +
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}},` +
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + paper + `"},"title":"paper"}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig1"},` +
		`{"type":"server_tool_use","id":"srv1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srv1","content":[]},` +
		`{"type":"text","text":"I look"},` +
		`{"type":"tool_use","id":"c1","name":"f","input":{"a":1}},{"type":"tool_use","id":"c2","name":"g","input":{"b":2}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"one"}]},` +
		`{"type":"tool_result","tool_use_id":"c2","is_error":true,"content":[{"type":"text","text":"two"}]},{"type":"text","text":"so?"}]},` +
		`{"role":"assistant","content":[{"type":"redacted_thinking","data":"sig2"},{"type":"tool_use","id":"c3","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c3","content":[{"type":"text","text":"three"}]}]}` +
		`],"stop_sequences":["END"],"stream":true,` +
		`"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"g","description":"does g","input_schema":{"type":"object"}}],` +
		`"tool_choice":{"type":"auto"},"thinking":{"type":"enabled","budget_tokens":2000}}`,

	OpenAIChat: `{"model":"m","messages":[{"role":"developer","content":"be kind"},` +
		`{"role":"user","content":[{"type":"text","text":"first"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `","detail":"low"}},` +
		`{"type":"file","file":{"filename":"p.pdf","file_data":"data:application/pdf;base64,` + paper + `"}}]},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},` +
		`{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},` +
		`{"role":"tool","content":"one","tool_call_id":"c1"},{"role":"tool","content":"two","tool_call_id":"c2"},` +
		`{"role":"assistant","content":"well"},{"role":"user","content":"so?"}],` +
		`"max_completion_tokens":100,"temperature":0.5,"stop":["END"],"stream":true,"stream_options":{"include_usage":true},` +
		`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},{"type":"function","function":{"name":"g"}}],` +
		`"tool_choice":{"type":"function","function":{"name":"g"}},"store":true,"metadata":{"k":"v"}}`,

	OpenAIResponses: `{"model":"m","instructions":"be kind","input":[` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"first"},` +
		`{"type":"input_image","image_url":"data:image/png;base64,` + pixel + `","detail":"auto"},` +
		`{"type":"input_file","filename":"p.pdf","file_data":"data:application/pdf;base64,` + paper + `"}]},` +
		`{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"sig1"},` +
		`{"type":"message","role":"assistant","content":"I look"},` +
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"},{"type":"function_call","call_id":"c2","name":"g","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c1","output":"one"},{"type":"function_call_output","call_id":"c2","output":"two"},` +
		`{"type":"message","role":"assistant","content":"well"},{"type":"message","role":"user","content":"so?"}],` +
		`"max_output_tokens":100,"temperature":0.5,"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":false},` +
		`{"type":"function","name":"g","parameters":{"type":"object"},"strict":true}],"tool_choice":{"type":"function","name":"g"},` +
		`"include":["reasoning.encrypted_content"],"store":false,"stream":true,"stream_options":{"include_obfuscation":false}}`,

	GeminiGenerate: `{"model":"m","contents":[{"role":"user","parts":[{"text":"first"},{"inlineData":{"mimeType":"image/png","data":"` + pixel + `"}},` +
		`{"inlineData":{"mimeType":"application/pdf","data":"` + paper + `"}}]},` +
		`{"role":"model","parts":[{"text":"I look","thoughtSignature":"c2ln"},{"functionCall":{"id":"c1","name":"f","args":{"a":1}},"thoughtSignature":"c2lnMQ=="},` +
		`{"functionCall":{"id":"c2","name":"g","args":{}}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"one"}}},` +
		`{"functionResponse":{"id":"c2","name":"g","response":{"error":"two"}}},{"text":"so?"}]},` +
		`{"role":"model","parts":[{"text":"well"}]},{"role":"user","parts":[{"text":"and?"}]}],` +
		`"systemInstruction":{"parts":[{"text":"be kind"}]},` +
		`"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object"}},{"name":"g","description":"does g"}]}],` +
		`"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["g"]}},` +
		`"generationConfig":{"maxOutputTokens":100,"temperature":0.5,"stopSequences":["END"],"thinkingConfig":{"includeThoughts":true,"thinkingBudget":1000}}}`,

	GeminiInteractions: `{"model":"m","system_instruction":"be kind","input":[` +
		`{"type":"user_input","content":[{"type":"text","text":"first"},{"type":"image","mime_type":"image/png","data":"` + pixel + `"},` +
		`{"type":"document","mime_type":"application/pdf","data":"` + paper + `"}]},` +
		`{"type":"thought","summary":[{"type":"text","text":"hm"}],"signature":"c2ln"},` +
		`{"type":"model_output","content":[{"type":"text","text":"I look"}]},` +
		`{"type":"function_call","id":"c1","name":"f","arguments":{"a":1}},{"type":"function_call","id":"c2","name":"g","arguments":{}},` +
		`{"type":"function_result","call_id":"c1","name":"f","result":"one"},{"type":"function_result","call_id":"c2","name":"g","result":"two","is_error":true},` +
		`{"type":"model_output","content":[{"type":"text","text":"well"}]},{"type":"user_input","content":[{"type":"text","text":"so?"}]}],` +
		`"tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"function","name":"g"}],` +
		`"generation_config":{"max_output_tokens":100,"temperature":0.5,"stop_sequences":["END"],"tool_choice":{"allowed_tools":{"mode":"any","tools":["g"]}}},` +
		`"stream":true,"store":true,"background":true,"labels":{"k":"v"}}`,
}
