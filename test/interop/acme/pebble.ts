/** Pebble, the ACME server that Let's Encrypt tests clients with, and its name server, as Debian packages both. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, get } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { axios, Client } from 'acme-client'
import { portsToKeep } from '../../support/free-port.ts'
import { tlsIdentity } from '../../support/tls-identity.ts'
import { until } from '../../support/until.ts'

const isMissing = ['pebble', 'pebble-challtestsrv'].some((program) => spawnSync(program, ['-h']).error !== undefined)

/** Why tests with pebble cannot run; false when they can. */
export const missing = isMissing && 'pebble (`pebble` and `pebble-challtestsrv`) is not on PATH'

/** The settings of a platform that uses pebble, known before pebble runs. */
export interface PebblePlace {
  readonly directory: string
  /** The file of a CA that the platform trusts. */
  readonly caFile: string
  readonly binding: { readonly keyId: string; readonly key: string }
  readonly folder: string
  /** Where records are set: `/set-txt`, `/clear-txt`, `/add-a`. */
  readonly records: string
}

export interface Pebble extends PebblePlace {
  /** The root of its certificates, in PEM; new at each start. */
  root(): Promise<string>
  /** Whether a certificate, by its serial number in hex, is `Valid` or `Revoked`. */
  statusOf(serial: string): Promise<string>
  /** Revokes a certificate in PEM with the key of the account that ordered it. */
  revoke(certificate: string, account: { readonly key: string; readonly url: string }): Promise<void>
  start(options: PebbleOptions): Promise<void>
  /** Changes the answers of its name server. */
  set(what: string, value: object): Promise<void>
  stop(): Promise<void>
}

export interface PebbleOptions {
  /** The ports where it checks http-01 and tls-alpn-01. */
  readonly httpPort: number
  readonly httpsPort: number
  /** How long its certificates live, in seconds. */
  readonly lifeS: number
}

const binding = { keyId: 'kid-1', key: Buffer.from('a key that both sides agreed on').toString('base64url') }

/** How many nonces pebble refuses, in percent. */
const REFUSED_NONCES = '50'

export async function pebblePlace(): Promise<Pebble> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-pebble-'))
  const identity = await tlsIdentity()
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, identity.ca)
  await writeFile(join(folder, 'cert.pem'), identity.cert)
  await writeFile(join(folder, 'key.pem'), identity.key)
  const [acmePort, managementPort, dnsPort, recordsPort] = await portsToKeep(4)
  const at = (port: number | undefined) => `127.0.0.1:${port}`
  const records = `http://${at(recordsPort)}`
  const running: ChildProcess[] = []
  const agent = new Agent({ ca: identity.ca })

  const run = async (program: string, args: readonly string[], ports: readonly (number | undefined)[]) => {
    const env = { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: REFUSED_NONCES }
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    running.push(child)
    let said = ''
    for (const output of [child.stdout, child.stderr]) {
      // Read, so that the program never blocks; its last output is enough to see what was wrong.
      output.on('data', (chunk: Buffer) => {
        said = (said + chunk.toString()).slice(-2000)
      })
    }
    for (const port of ports) {
      await until(`${program} listens`, () => {
        if (child.exitCode !== null) throw new Error(`${program} ended: ${said}`)
        return isOpen(port ?? 0)
      })
    }
  }

  return {
    directory: `https://${at(acmePort)}/dir`,
    caFile,
    binding,
    folder,
    records,
    async start({ httpPort, httpsPort, lifeS }) {
      const config = {
        pebble: {
          listenAddress: at(acmePort),
          managementListenAddress: at(managementPort),
          certificate: join(folder, 'cert.pem'),
          privateKey: join(folder, 'key.pem'),
          httpPort,
          tlsPort: httpsPort,
          externalAccountBindingRequired: true,
          externalAccountMACKeys: { [binding.keyId]: binding.key },
          certificateValidityPeriod: lifeS,
        },
      }
      await writeFile(join(folder, 'pebble.json'), JSON.stringify(config))
      const off = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-defaultIPv6', '']
      await run(
        'pebble-challtestsrv',
        ['-dns01', at(dnsPort), '-management', at(recordsPort), ...off],
        [recordsPort, dnsPort],
      )
      const args = ['-config', join(folder, 'pebble.json'), '-dnsserver', at(dnsPort)]
      await run('pebble', args, [acmePort, managementPort])
    },
    async root() {
      const [response] = await once(get(`https://${at(managementPort)}/roots/0`, { agent }), 'response')
      return text(response)
    },
    async statusOf(serial) {
      const where = `https://${at(managementPort)}/cert-status-by-serial/${serial.toLowerCase()}`
      const [response] = await once(get(where, { agent }), 'response')
      return JSON.parse(await text(response)).Status
    },
    async revoke(certificate, { key, url }) {
      axios.defaults.httpsAgent = agent
      const client = new Client({ directoryUrl: `https://${at(acmePort)}/dir`, accountKey: key, accountUrl: url })
      for (let tries = 1; ; tries++) {
        try {
          await client.revokeCertificate(certificate)
          return
        } catch (error) {
          // Pebble may refuse several nonces in a row.
          if (tries === 10 || !String(error).includes('JWS has an invalid anti-replay nonce')) throw error
        }
      }
    },
    async set(what, value) {
      const { ok } = await fetch(`${records}/${what}`, { method: 'POST', body: JSON.stringify(value) })
      if (!ok) throw new Error(`pebble-challtestsrv does not take ${what}`)
    },
    async stop() {
      agent.destroy()
      for (const child of running) {
        child.kill('SIGKILL')
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      }
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
