/** The settings as flags of a command. */
import { type Command, Option } from 'commander'
import { readSettings, type Settings } from '../server/config/read-settings.ts'
import type { Setting } from '../server/config/setting-kinds.ts'
import type { SettingSources } from '../server/config/settings-sources.ts'
import { configFlag, settings } from '../server/config/settings-table.ts'
import type { Terminal } from './terminal.ts'

/** Adds `--config` to `command`, and a flag for each setting or for those in `only`. */
export function addSettingsFlags(command: Command, { only }: { only?: readonly string[] } = {}): Command {
  command.option(`--${configFlag} <path>`, 'settings file (default: ./postern.yml if it exists)')
  for (const setting of settings) {
    if (setting.envOnly || (only && !only.includes(setting.name))) continue
    // commander gets no default: a setting that is not on the command line may still come from elsewhere.
    const option = new Option(`--${setting.name} ${setting.takes}`, about(setting))
    command.addOption(setting.takes.startsWith('[') ? option.preset('on') : option)
  }
  return command
}

/** Adds the flags of a command that opens the database itself, perhaps under a running server of an older version. */
export function addDatabaseFlags(command: Command): Command {
  addSettingsFlags(command, { only: ['data-dir', 'database-url', 'key-file'] })
  return command.option(
    '--migrate',
    'change the tables of a database of an older version first; stop its server before',
  )
}

/** The settings of a command that has these flags; throws `SettingsError`. `how` is used by servers only. */
export function settingsOf(
  command: Command,
  { env, cwd }: Terminal,
  how: Pick<SettingSources, 'handed' | 'isServing'> = {},
): Settings {
  const values = command.opts<Record<string, string | undefined>>()
  const names = [configFlag, ...settings.filter((each) => !each.envOnly).map((each) => each.name)]
  const flags = Object.fromEntries(names.map((name) => [name, values[new Option(`--${name}`).attributeName()]]))
  return readSettings({ flags, env, cwd, ...how })
}

function about(setting: Setting<unknown>): string {
  const fallback = setting.default ?? setting.defaultNote
  return fallback === undefined ? setting.about : `${setting.about} (default: ${fallback})`
}
