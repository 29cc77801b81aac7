/** What bystanders of hostile neighbours do besides visits: they log in, bind addresses, and serve over SSH. */
import { randomUUID } from 'node:crypto'
import { connect as connectTls } from 'node:tls'
import { connect } from '../../src/agent/library.ts'
import { TestClient } from '../../src/data-plane/ssh/testing/test-gateway.ts'
import { JarClient } from '../interop/oidc/jar-client.ts'
import { connected, EchoSocket, type Place, StepFailure, type Visit } from './visits.ts'

export interface BindPlace {
  /** `host:port` of the agent listener, and the credential. */
  readonly server: string
  /** PEM. */
  readonly ca: string
  readonly authtoken: string
}

/** The SSH gateway, and a key that it knows. */
export interface SshPlace {
  readonly port: number
  readonly privateKey: string
}

const once = { isRepeated: false } as const

/** A name that nobody else has. */
const ownName = (): string => `${randomUUID()}.chaos.test`

/** Each on a connection of its own: a handshake and an echo at a TLS edge that ends TLS. */
export function tlsEcho({ url, ca }: Place): Visit {
  const { hostname, port } = new URL(url)
  return {
    async step() {
      const to = { host: '127.0.0.1', port: Number(port), servername: hostname, ...(ca !== undefined && { ca }) }
      const socket = EchoSocket.over(await connected(connectTls(to), 'secureConnect'), () => {})
      await socket.echo(Buffer.from('word')).finally(() => socket.close())
      return once
    },
    close() {},
  }
}

/** Logs in with an identity provider as a new visitor each time, up to the page behind the login. */
export function logIn({ url, ca = '' }: Place): Visit {
  return {
    async step() {
      const { status, headers, url: at } = await new JarClient({ ca }, '1.1').open(url)
      if (status === 200 && at === url) return once
      throw new StepFailure(`${status} ${String(headers['postern-error-code'] ?? '')} at ${new URL(at).pathname}`, [])
    },
    close() {},
  }
}

/** One agent binds a name and gives it up again. */
export function bind({ server, ca, authtoken }: BindPlace): Visit {
  let agent: ReturnType<typeof connect> | undefined
  return {
    async step() {
      agent ??= connect({ server, ca, authtoken })
      try {
        const bound = await (await agent).forward({ addr: 9, domain: ownName() })
        await bound.close()
      } catch (error) {
        throw new StepFailure(error instanceof Error ? error.message : String(error), [])
      }
      return once
    },
    close: () => void agent?.then((one) => one.close()),
  }
}

/** An SSH session of its own: it logs in, runs a command, asks for a forward, gives it up and leaves. */
export function sshForward({ port, privateKey }: SshPlace): Visit {
  return {
    async step() {
      const client = new TestClient(port)
      try {
        await client.login({ privateKey })
        const name = ownName()
        // As `ssh` does; a forward without a command waits a moment for it.
        await client.exec('http')
        await client.forward(name, 80)
        await client.cancel(name, 80)
      } catch (error) {
        throw new StepFailure(error instanceof Error ? error.message : String(error), [])
      } finally {
        client.ssh.end()
      }
      return once
    },
    close() {},
  }
}
