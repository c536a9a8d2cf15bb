# Only the gateway, without Redis: set ERRAND_REDIS_URL (docker-compose.yml does).
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build

FROM node:24-bookworm-slim
ENV NODE_ENV=production ERRAND_HOST=0.0.0.0 ERRAND_PORT=4180 ERRAND_DATA_DIR=/data
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/dist ./dist
# `docker exec CONTAINER errand …` is the CLI, as the operator.
RUN install -d -o node -g node -m 0700 /data && ln -s /app/dist/errand.js /usr/local/bin/errand
USER node
VOLUME /data
EXPOSE 4180
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${Number(process.env.ERRAND_PORT) || 4180}/readyz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Runs as PID 1: it handles SIGTERM itself and, without an embedded Redis, has no children but its own gateways.
# --max-semi-space-size: docs/operations.md says why.
CMD ["node", "--max-semi-space-size=32", "dist/errand.js", "serve"]
