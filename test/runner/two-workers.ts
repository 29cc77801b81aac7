/** The files that `npm test` runs again with two workers: they test what several planes must do as one. */
export const TWO_WORKERS: readonly string[] = [
  'test/e2e/agent-commands.test.ts',
  'test/e2e/agent-reconnects.test.ts',
  'test/e2e/edge-isolation.test.ts',
  'test/e2e/edge-live.test.ts',
  'test/e2e/edge-stop.test.ts',
  'test/e2e/edge-tls.test.ts',
  'test/e2e/edge-websocket.test.ts',
  'test/e2e/handed-sockets.test.ts',
  'test/e2e/login-flow.test.ts',
  'test/e2e/policy-actions.test.ts',
]
