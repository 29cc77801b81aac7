/** Reads the settings from flags, environment and file into the one frozen value that the server is built from. */
import { resolve } from 'node:path'
import { hostNodeName, reachedAt } from './own-address.ts'
import { listen } from './parse-value.ts'
import type { Setting } from './setting-kinds.ts'
import { SettingsError } from './settings-error.ts'
import type { Given } from './settings-file.ts'
import { gather, type SettingSources } from './settings-sources.ts'
import { CLUSTER_LISTEN, table, type Values } from './settings-table.ts'

/** One frozen value with a field for each entry of the table, but for the two of the first start. */
export type Settings = Readonly<ReturnType<typeof complete>>

/** Reads, checks and completes the settings; throws a `SettingsError` that lists every problem. */
export function readSettings(sources: SettingSources): Settings {
  const { given, problems: misnamed } = gather(sources)
  const problems = [...misnamed]
  const values: Record<string, unknown> = {}
  for (const [field, setting] of Object.entries<Setting<unknown>>(table)) {
    const { text, from } = given.get(setting.name) ?? { text: setting.default, from: 'default' }
    try {
      values[field] = text === null ? null : setting.parse(text, sources.cwd)
    } catch (error) {
      const fault = error instanceof Error ? error.message : String(error)
      problems.push(`\`${setting.name}\` (${from}) ${fault}, for example \`${setting.example}\``)
    }
  }
  if (problems.length > 0) throw new SettingsError(problems)
  // The loop has filled in every field of the table.
  const parsed = values as Values
  const fault = clusterFault(parsed, given.get(table.clusterListen.name))
  if (fault !== undefined) throw new SettingsError([fault])
  return deepFreeze(complete(parsed))
}

/** Fills in defaults that depend on other settings or on the machine. */
function complete({ bootstrapApiKey, bootstrapAuthtoken, ...values }: Values) {
  const { dataDir, agentListen } = values
  const clusterListen = values.clusterListen ?? (isPostgres(values) ? listen(CLUSTER_LISTEN) : 'off')
  const clusterAddress = clusterListen === 'off' ? null : (values.clusterAddress ?? reachedAt(clusterListen))
  return {
    ...values,
    databaseUrl: values.databaseUrl ?? `sqlite:${resolve(dataDir, 'postern.db')}`,
    keyFile: values.keyFile ?? resolve(dataDir, 'secret.key'),
    agentAddress: clusterAddress && (values.agentAddress ?? reachedAt(agentListen, clusterAddress.host)),
    clusterListen: clusterListen === 'off' ? null : clusterListen,
    clusterAddress,
    nodeName: values.nodeName ?? hostNodeName(),
    publicHttpsPort: values.publicHttpsPort ?? values.httpsListen.port,
    publicHttpPort: values.publicHttpPort ?? values.httpListen.port,
    bootstrap: { apiKey: bootstrapApiKey, authtoken: bootstrapAuthtoken },
  }
}

/** Why this node cannot have other nodes although `cluster-listen` was given. */
function clusterFault(values: Values, given: Given | undefined): string | undefined {
  if (values.clusterListen === null || values.clusterListen === 'off' || isPostgres(values)) return undefined
  const { name } = table.clusterListen
  return `\`${name}\` (${given?.from}) needs a \`database-url\` of PostgreSQL; nodes cannot share a SQLite database`
}

function isPostgres({ databaseUrl }: Pick<Values, 'databaseUrl'>): boolean {
  return databaseUrl?.startsWith('postgres') ?? false
}

export function deepFreeze<T extends object>(value: T): T {
  for (const each of Object.values(value)) if (typeof each === 'object' && each !== null) deepFreeze(each)
  return Object.freeze(value)
}
