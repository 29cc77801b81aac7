/** OpenSSH: `ssh -R` to an sshd with a temporary configuration and keys. */
import { mkdirSync, rmdirSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { freePort, LOOPBACK } from '../../stage/ports.ts'
import type { Program } from '../../stage/programs.ts'
import type { Stage } from '../../stage/stage.ts'
import type { Contender, Ground } from './contender.ts'

/** Debian's sshd needs this empty folder when it runs as root; usually its service creates it. */
const PRIVILEGE_SEPARATION_FOLDER = '/run/sshd'

/** The file of the client's private key; the public key is in the `.pub` file beside it. */
export const USER_KEY = 'user_key'

/** How long making a key may take, in milliseconds. */
const KEYGEN_MS = 10_000

export const openssh: Contender = {
  name: 'OpenSSH -R',
  link: 'L4 TLS',
  needs: ['sshd', 'ssh', 'ssh-keygen'],
  version: ['ssh', '-V'],
  async start(upstreamPort, ground) {
    const sshPort = await startSshd(ground)
    const port = await freePort()
    const forward = `${LOOPBACK}:${port}:${LOOPBACK}:${upstreamPort}`
    const target = { user: userInfo().username, port: sshPort }
    await startSsh(ground, target, ['-N', '-R', forward]).listens(port)
    return { host: LOOPBACK, port }
  },
}

/** Starts the client with its own key; `command`, if any, is to run on the server. */
export function startSsh(
  { stage, path, sshCipher }: Ground,
  { user, port }: { readonly user: string; readonly port: number },
  forward: readonly string[],
  command: readonly string[] = [],
): Program {
  const options = {
    IdentityFile: join(stage.folder, USER_KEY),
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    StrictHostKeyChecking: 'no',
    UserKnownHostsFile: '/dev/null',
    ExitOnForwardFailure: 'yes',
    BatchMode: 'yes',
    Compression: 'no',
    LogLevel: 'ERROR',
    ...cipherOption(sshCipher),
  }
  const flags = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  const target = ['-p', String(port), `${user}@${LOOPBACK}`]
  return stage.programs.start(path('ssh'), ['-F', '/dev/null', ...flags, ...forward, ...target, ...command])
}

async function startSshd({ stage, path, sshCipher }: Ground): Promise<number> {
  const port = await freePort()
  await Promise.all([makeKey(stage, path('ssh-keygen'), 'host_key'), makeKey(stage, path('ssh-keygen'), USER_KEY)])
  if (userInfo().uid === 0) makePrivilegeSeparationFolder(stage)
  const options = {
    ListenAddress: `${LOOPBACK}:${port}`,
    HostKey: join(stage.folder, 'host_key'),
    AuthorizedKeysFile: join(stage.folder, `${USER_KEY}.pub`),
    PidFile: 'none',
    // The key is in a temporary folder, below one that is writable for all users.
    StrictModes: 'no',
    UsePAM: 'no',
    PasswordAuthentication: 'no',
    PermitRootLogin: 'prohibit-password',
    Compression: 'no',
    LogLevel: 'ERROR',
    ...cipherOption(sshCipher),
  }
  const lines = Object.entries(options).map(([name, value]) => `${name} ${value}\n`)
  const config = await stage.write('sshd_config', lines.join(''))
  await stage.programs.start(path('sshd'), ['-D', '-e', '-f', config]).listens(port)
  return port
}

/** `default` leaves the choice to OpenSSH. */
function cipherOption(cipher: string): { Ciphers?: string } {
  return cipher === 'default' ? {} : { Ciphers: cipher }
}

export async function makeKey(stage: Stage, keygen: string, name: string): Promise<void> {
  const args = ['-q', '-t', 'ed25519', '-N', '', '-C', 'bench', '-f', join(stage.folder, name)]
  await stage.programs.run(keygen, args, { timeoutMs: KEYGEN_MS })
}

function makePrivilegeSeparationFolder(stage: Stage): void {
  try {
    mkdirSync(PRIVILEGE_SEPARATION_FOLDER, { mode: 0o755 })
  } catch {
    return // it exists already, so it is not ours to remove
  }
  stage.onClose(() => rmdirSync(PRIVILEGE_SEPARATION_FOLDER))
}
