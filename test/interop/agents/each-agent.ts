/** Defines the same suite for every agent, each with its own platform. */
import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import type { TunnelOptions } from '../../../src/agent/config/tunnel-options.ts'
import type { Json } from '../../support/api-client.ts'
import { type TcpRange, tcpRange } from '../../support/free-port.ts'
import { type Platform, type PlatformOptions, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import {
  type Access,
  type AgentDriver,
  AgentRefusal,
  type ConnectedAgent,
  type ConnectOptions,
  type OpenTunnel,
} from './driver.ts'
import { ownDriver } from './own-driver.ts'
import { sdkDriver } from './sdk-driver.ts'
import { sshDriver } from './ssh-driver.ts'

export const drivers: readonly AgentDriver[] = [sdkDriver, ownDriver, sshDriver]

export interface Stage {
  readonly driver: AgentDriver
  /** Available only while tests run, not while they are defined. */
  readonly platform: Platform
  /** The TCP ports of the platform, exclusive to it. */
  readonly range: TcpRange
  /** A TCP port that no test got before. */
  tcpPort(): number
  /** An agent that is closed after the test. */
  connect(t: TestContext, options?: Partial<ConnectOptions>): Promise<ConnectedAgent>
  /** A tunnel, closed after the test, of an agent that all tests of the stage share. */
  open(t: TestContext, tunnel: TunnelOptions): Promise<OpenTunnel>
  /** Resolves when a session is no longer online. */
  gone(sessionId: string): Promise<void>
}

/** Short, since silent sessions, which the SDK leaves behind, must not delay the end of a platform. */
const flags = { 'drain-timeout': '1s' }

/** More than a suite ever uses. */
const TCP_PORTS = 50

/** A row of the suite; not defined for a driver that lacks it. */
export type DefineRow = (title: string, run: (t: TestContext) => Promise<void>) => void

export function eachAgent(define: (stage: Stage, row: DefineRow) => void, options: PlatformOptions = {}): void {
  for (const driver of drivers) {
    describe(driver.name, { skip: driver.missing }, () => {
      let running: Platform | undefined
      let range: TcpRange | undefined
      let givenPorts = 0
      let shared: Promise<ConnectedAgent> | undefined
      let access: Promise<Access> | undefined
      const platform = (): Platform => {
        if (!running) throw new Error('the platform runs only while tests do')
        return running
      }
      const tcp = (): TcpRange => {
        if (!range) throw new Error('ports are known only while tests run')
        return range
      }
      const row: DefineRow = (title, run) => {
        if (!driver.lacks.some(([part]) => title.includes(part))) test(title, run)
      }
      const connect = async (given: Partial<ConnectOptions> = {}): Promise<ConnectedAgent> => {
        access ??= driver.access(platform())
        return driver.connect({ ...(await access), ...given })
      }
      before(async () => {
        range = await tcpRange(TCP_PORTS)
        running = await startPlatform({ ...options, flags: { ...flags, ...range.flags, ...options.flags } })
      })
      const stage: Stage = {
        driver,
        get platform() {
          return platform()
        },
        get range() {
          return tcp()
        },
        tcpPort: () => tcp().ports[givenPorts++] ?? assert.fail('no TCP ports are left'),
        async connect(t, given) {
          const agent = await connect(given)
          t.after(() => agent.close())
          return agent
        },
        async open(t, tunnel) {
          shared ??= connect()
          const opened = await (await shared).open(tunnel)
          t.after(() => opened.close())
          return opened
        },
        async gone(sessionId) {
          const look = () => platform().admin.send('GET', `/tunnel_sessions/${sessionId}`)
          await until('the session is gone', async () => (await look()).status === 404)
        },
      }
      define(stage, row)
      // Registered last so that they run last: the hooks of the suite close what they opened first.
      after(async () => (await shared)?.close())
      after(() => running?.stop())
    })
  }
}

/** A check for `assert.rejects`: the server refused with this number, and in words. */
export function refusal(ngrok: number, words?: RegExp) {
  return (error: unknown): true => {
    assert.ok(error instanceof AgentRefusal, String(error))
    assert.equal(error.code, `ERR_NGROK_${ngrok}`, error.message)
    if (words) assert.match(error.message, words)
    return true
  }
}

/** The session with this metadata, by which tests recognise their own. */
export function sessionOf(platform: Platform, metadata: string): Promise<Json> {
  return until(`a session with the metadata ${metadata}`, async () => {
    const { tunnel_sessions } = await platform.admin.get('/tunnel_sessions?limit=100')
    return tunnel_sessions.find((each: Json) => each.metadata === metadata)
  })
}

/** The tunnel at a URL, as the API shows it; undefined when it is not online. */
export async function tunnelAt(platform: Platform, url: string): Promise<Json> {
  const { tunnels } = await platform.admin.get('/tunnels?limit=100')
  return tunnels.find((each: Json) => each.public_url === url)
}
