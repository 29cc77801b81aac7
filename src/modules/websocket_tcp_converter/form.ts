/** The `websocket_tcp_converter` module: WebSocket messages of the visitor are plain bytes for the upstream. */
import { defineModule, moduleForm } from '../module.ts'

export const websocketTcpConverter = defineModule({
  name: 'websocket_tcp_converter',
  about: 'Accepts only WebSocket connections, and sends the content of their messages upstream as plain bytes.',
  at: { route: moduleForm({}) },
  needs: () => 'http',
  resolve: () => ({}),
})
