import { create } from "@bufbuild/protobuf";
import type { Conversation, GenerationOptions } from "../api/wire";
import { GenerationOptionsSchema } from "../api/wire";
import { labelLines, parseLabels } from "./names";

/** What can be set about a conversation, as it stands in a form. */
export interface Settings {
  title: string;
  labels: string;
  model: string;
  system: string;
}

export const EMPTY: Settings = { title: "", labels: "", model: "", system: "" };

export function settingsOf(conversation: Conversation): Settings {
  return {
    title: conversation.title,
    labels: labelLines(conversation.labels),
    model: conversation.defaults?.model ?? "",
    system: conversation.defaults?.system ?? "",
  };
}

/** The fields to send. Options that the form does not show stay as they were. */
export function fieldsOf(settings: Settings, was?: GenerationOptions) {
  const model = settings.model.trim();
  const changed = model !== (was?.model ?? "") || settings.system !== (was?.system ?? "");
  const base = was ?? create(GenerationOptionsSchema);
  return {
    title: settings.title.trim(),
    labels: parseLabels(settings.labels),
    defaults: changed ? { ...base, model, system: settings.system } : was,
  };
}

export function SettingsFields({ settings, onChange }: { settings: Settings; onChange: (next: Settings) => void }) {
  const change = (name: keyof Settings) => (event: { target: { value: string } }) => onChange({ ...settings, [name]: event.target.value });
  return (
    <>
      <label>
        Title
        <input data-first value={settings.title} onChange={change("title")} maxLength={512} dir="auto" />
      </label>
      <label>
        Labels
        <textarea rows={2} value={settings.labels} onChange={change("labels")} placeholder={"name=value\none on a line"} spellCheck={false} />
      </label>
      <label>
        Model
        <input value={settings.model} onChange={change("model")} placeholder="the server's default" spellCheck={false} autoComplete="off" />
      </label>
      <label>
        Instructions for the model
        <textarea rows={3} value={settings.system} onChange={change("system")} dir="auto" />
      </label>
    </>
  );
}
