/** Our SSH gateway with the OpenSSH client: a TCP endpoint opened with plain `ssh -R`. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { awaitTunnel, startPosternServer } from '../postern.ts'
import { LOOPBACK } from '../stage/ports.ts'
import type { Contender } from '../tunnel/contenders/contender.ts'
import { makeKey, startSsh, USER_KEY } from '../tunnel/contenders/openssh.ts'

export const posternSsh: Contender = {
  name: 'Postern ssh',
  link: 'L4 TLS',
  isOurs: true,
  needs: ['ssh', 'ssh-keygen'],
  async start(upstreamPort, ground) {
    const { stage, path } = ground
    await makeKey(stage, path('ssh-keygen'), USER_KEY)
    const server = await startPosternServer(ground)
    const publicKey = await readFile(join(stage.folder, `${USER_KEY}.pub`), 'utf8')
    await server.api.create('/ssh_credentials', { public_key: publicKey.trim() })
    const forward = ['-R', `0:${LOOPBACK}:${upstreamPort}`]
    const client = startSsh(ground, { user: 'bench', port: server.sshPort }, forward, ['tcp'])
    const publicUrl = await awaitTunnel(server, client)
    return { host: LOOPBACK, port: Number(new URL(publicUrl).port) }
  },
}
