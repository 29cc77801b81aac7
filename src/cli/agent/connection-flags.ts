/** The flags of every agent command: the server, the login, and the output. */
import { type Command, Option } from 'commander'
import { ConfigError } from '../../agent/config/config-error.ts'
import { type AgentConfig, type AgentFlags, readAgentConfig } from '../../agent/config/connection.ts'
import { DEFAULT_SERVER } from '../../agent/server-address.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { SettingsError } from '../../server/config/settings-error.ts'
import type { Terminal } from '../terminal.ts'

const outputFormats = ['auto', 'lines', 'json'] as const
const outputLevels = ['info', 'debug'] as const

export interface Output {
  readonly format: (typeof outputFormats)[number]
  readonly level: (typeof outputLevels)[number]
}

export function addConnectionFlags(command: Command): Command {
  return command
    .option('--server <host:port>', `the server (default: ${DEFAULT_SERVER})`)
    .option('--ca <file>', "CA of the server's certificate (default: the CAs of this machine)")
    .option('--authtoken <token>', 'authtoken; set POSTERN_AUTHTOKEN instead to keep it out of process lists')
}

export function addAgentFlags(command: Command): Command {
  return addConnectionFlags(command)
    .option(
      '--config <file>',
      'configuration file, or an ngrok.yml (default: ./postern-agent.yml, ~/.config/postern/agent.yml)',
    )
    .option(
      '--connections <n>',
      'most connections to the server: one for each worker, and to a second node (default: auto)',
    )
    .option(
      '--inspect-listen <address>',
      'where requests can be inspected and replayed, or false (default: 127.0.0.1:4040, or the next free port)',
    )
    .addOption(
      new Option('--log-format <format>', 'auto is a live view on a terminal, and lines elsewhere')
        .choices(outputFormats)
        .default('auto'),
    )
    .addOption(new Option('--log-level <level>', 'debug logs every connection').choices(outputLevels).default('info'))
}

export interface ConnectionOptions extends Omit<AgentFlags, 'authtoken'> {
  readonly authtoken?: string
  readonly logFormat: Output['format']
  readonly logLevel: Output['level']
}

/** Throws a `SettingsError` that lists everything wrong. */
export async function agentConfigOf(
  command: Command,
  { cwd, env, err }: Terminal,
  { hasTunnel = false }: Pick<AgentFlags, 'hasTunnel'> = {},
): Promise<AgentConfig> {
  const { authtoken, ...others } = command.opts<ConnectionOptions>()
  const flags = { ...others, hasTunnel, authtoken: authtoken ? new Secret(authtoken) : undefined }
  const read = await readAgentConfig(flags, { cwd, env }).catch((error: unknown) => {
    throw error instanceof ConfigError ? new SettingsError(error.problems) : error
  })
  for (const note of read.notes) err(`${note}\n`)
  return read
}

export function outputOf(command: Command): Output {
  const { logFormat, logLevel } = command.opts<ConnectionOptions>()
  return { format: logFormat, level: logLevel }
}
