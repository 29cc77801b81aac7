/** Runs our agent as people do: the program in a separate process, with a configuration file. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TunnelOptions } from '../../src/agent/config/tunnel-options.ts'
import { type Ended, start } from './server-process.ts'
import type { Owner } from './upstream.ts'

export interface AgentProcessOptions {
  /** `host:port`. */
  readonly server: string
  readonly caFile: string
  readonly authtoken: string
  readonly metadata?: string
  readonly tunnels: Readonly<Record<string, TunnelOptions>>
  /** The interval of heartbeats, and how late one may be, in seconds. */
  readonly heartbeatS?: number
  readonly inspectListen?: string | false
}

export interface AgentProcess {
  readonly ended: Promise<Ended>
  out(): string
  says(text: RegExp): Promise<void>
  kill(signal: NodeJS.Signals): void
}

/** Resolves when its first tunnel is online; it is killed with its owner. */
export async function startAgent(owner: Owner, options: AgentProcessOptions): Promise<AgentProcess> {
  const { server, caFile, authtoken, metadata, tunnels, heartbeatS, inspectListen: inspect_listen } = options
  const folder = await mkdtemp(join(tmpdir(), 'postern-agent-'))
  const file = join(folder, 'postern-agent.yml')
  const beat = heartbeatS && { heartbeat_interval: `${heartbeatS}s`, heartbeat_tolerance: `${heartbeatS}s` }
  // JSON is valid YAML.
  await writeFile(file, JSON.stringify({ server, ca: caFile, authtoken, metadata, ...beat, inspect_listen, tunnels }))
  const running = start(['start', '--config', file, '--log-format', 'json'])
  owner.after(async () => {
    running.child.kill('SIGKILL')
    await running.ended
    await rm(folder, { recursive: true, force: true })
  })
  await running.says(/"tunnel online"/)
  return { ...running, kill: (signal) => void running.child.kill(signal) }
}
