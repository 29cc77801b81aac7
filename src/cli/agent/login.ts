/** `postern login`: saves the server and authtoken of this machine's agents, after connecting with them once. */
import { resolve } from 'node:path'
import { Command } from 'commander'
import { Agent } from '../../agent/agent.ts'
import { AgentFault } from '../../agent/agent-fault.ts'
import { ConfigError } from '../../agent/config/config-error.ts'
import { homeFile } from '../../agent/config/find-file.ts'
import { textReader } from '../../agent/config/text-files.ts'
import { type SavedLogin, writeLogin } from '../../agent/config/write-login.ts'
import { DEFAULT_SERVER, formatServer, parseServer } from '../../agent/server-address.ts'
import { packageVersion } from '../../lib/files/package-file.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { printable } from '../../lib/text/printable.ts'
import { certificatesPem } from '../../link/options/file-values.ts'
import { SettingsError } from '../../server/config/settings-error.ts'
import { Failure, misuse } from '../command-failure.ts'
import type { Terminal } from '../terminal.ts'
import { type Ask, processAsk } from './ask.ts'
import { addConnectionFlags, type ConnectionOptions } from './connection-flags.ts'

const examples = `
Examples:
  postern login
  postern login --server tunnels.example.com:7443 --ca ca.pem
  printf %s "$TOKEN" | postern login --server tunnels.example.com:7443

You are asked for what is not given as a flag. Without a terminal, the authtoken is read from standard input.`

type LoginOptions = Pick<ConnectionOptions, 'server' | 'ca' | 'authtoken' | 'config'>

/** `ask` is for tests. */
export function loginCommand(terminal: Terminal, ask: Ask = processAsk()): Command {
  const command = new Command('login').description('save the server and authtoken that agents on this machine use')
  addConnectionFlags(command).option('--config <file>', 'file to write (default: ~/.config/postern/agent.yml)')
  return command.addHelpText('after', examples).action(async (options: LoginOptions) => {
    const login = await gather(options, terminal, ask)
    const session = await tryOut(login)
    const path = options.config === undefined ? homeFile(terminal.env) : resolve(terminal.cwd, options.config)
    await writeLogin(path, login).catch((error: unknown) => {
      throw error instanceof ConfigError ? new SettingsError(error.problems) : error
    })
    terminal.out(`Logged in to ${formatServer(login.server)}${printable(session)}; saved in ${printable(path)}\n`)
  })
}

async function gather(options: LoginOptions, terminal: Terminal, ask: Ask): Promise<SavedLogin> {
  const askIfPossible = async (text: string, settings = {}): Promise<string> =>
    ask.isPossible ? ask.question(text, settings) : ''
  const server =
    options.server ?? (terminal.env.POSTERN_SERVER || (await askIfPossible(`Server [${DEFAULT_SERVER}]: `)))
  const authtoken =
    options.authtoken ??
    (ask.isPossible ? await ask.question('Authtoken: ', { isSecret: true }) : (await terminal.readInput()).trim())
  const ca = options.ca ?? (terminal.env.POSTERN_CA || (await askIfPossible('CA file [the CAs of this machine]: ')))
  if (authtoken === '') throw misuse('no authtoken: give --authtoken, or pass it on standard input')
  if (!/^[\x21-\x7e]+$/.test(authtoken))
    throw misuse('the authtoken contains a character that no authtoken has; copy it again')
  return {
    server: parseFlag('--server', () => parseServer(server || DEFAULT_SERVER)),
    authtoken: new Secret(authtoken),
    ca: ca === '' ? undefined : parseFlag('--ca', () => certificatesPem(textReader(terminal.cwd)(ca))),
  }
}

function parseFlag<T>(flag: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw misuse(`${flag} ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Connects once; resolves with the region of the server, for the message. */
async function tryOut(login: SavedLogin): Promise<string> {
  let region = ''
  const agent = new Agent({
    ...login,
    version: packageVersion(),
    clientType: 'postern-login',
    onEvent(event) {
      if (event.type === 'online') ({ region } = event)
    },
  })
  try {
    await agent.start()
    return region && ` (region ${region})`
  } catch (error) {
    if (!(error instanceof AgentFault)) throw error
    const said = error.code === 'refused' ? `the server refused this authtoken: ${error.message}` : error.message
    throw new Failure(`${printable(said.replaceAll('\n', ' '))}; nothing was written`, { cause: error })
  } finally {
    await agent.close()
  }
}
