/** The command that starts an agent against this server. */

interface AgentCommandOptions {
  /** Where agents connect, as the server listens: `0.0.0.0:7443`. */
  readonly agents: string
  /** Where the page was opened: people reach the server there. */
  readonly pageHost: string
  /** Empty until one is created. */
  readonly token: string
}

export function agentCommand({ agents, pageHost, token }: AgentCommandOptions): string {
  const colon = agents.lastIndexOf(':')
  const [host, port] = [agents.slice(0, colon), agents.slice(colon + 1)]
  // A server that listens on all interfaces is reached at the host of its page.
  const reached = /^(0\.0\.0\.0|\[::\]|::|\*)$/.test(host) ? pageHost : host
  return `postern http 3000 --server ${reached}:${port} --ca data/ca.pem --authtoken ${token === '' ? '…' : token}`
}
