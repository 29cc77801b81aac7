/** The health check of the container: ends with 0 when the server answers. */

const DEFAULT_LISTEN = '127.0.0.1:7400'
const ANSWER_MS = 4000

/** Where the server listens, as it would be called from inside: `0.0.0.0` is every address, and so this one. */
function address() {
  const [, host, port] = /^(.*):(\d+)$/.exec(process.env.POSTERN_API_LISTEN || DEFAULT_LISTEN) ?? []
  const everywhere = host === '0.0.0.0' || host === '[::]' || host === ''
  return `http://${everywhere ? '127.0.0.1' : host}:${port}/healthz`
}

try {
  const answer = await fetch(address(), { signal: AbortSignal.timeout(ANSWER_MS) })
  process.exitCode = answer.ok ? 0 : 1
} catch (error) {
  console.error(error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error))
  process.exitCode = 1
}
