/* SPDX-License-Identifier: BSD-3-Clause */

#include "jobs/job_pattern.h"

#include <ucp/api/ucp.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * A client of UCX that says who it is, and its server.
 *
 *   listener PORT            serves one client
 *   listener PORT ADDRESS    its client; ends with an error if nobody listens
 *
 * The client's id takes part of what little a connection request has room for.
 */

enum {
    PATIENCE = 60, /* Seconds */
    LENGTH   = 100000
};

static const uint64_t client_id = 0x0123456789abcdefull;

static const char *name; /* "server" or "client" */
static time_t deadline;
static ucp_worker_h worker;
static ucp_conn_request_h request; /* NULL: no client yet */
static ucs_status_t ep_status = UCS_OK;
static const ucp_request_param_t no_params;


static void __attribute__((noreturn))
fail(const char *what, const char *why)
{
    fprintf(stderr, "FAIL listener: %s: %s: %s\n", name, what, why);
    exit(EXIT_FAILURE);
}

static void check_status(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fail(what, ucs_status_string(status));
    }
}

static void progress(void)
{
    if (ucp_worker_progress(worker) == 0) {
        if (time(NULL) > deadline) {
            fail("progress", "nothing came for too long");
        }
        usleep(20);
    }
}

static void wait_for(void *operation, const char *what)
{
    ucs_status_t status = UCS_OK;

    if (UCS_PTR_IS_ERR(operation)) {
        check_status(UCS_PTR_STATUS(operation), what);
    } else if (operation != NULL) {
        while ((status = ucp_request_check_status(operation)) ==
               UCS_INPROGRESS) {
            check_status(ep_status, "connection");
            progress();
        }
        ucp_request_free(operation);
        check_status(status, what);
    }
}

static void on_request(ucp_conn_request_h conn_request, void *arg)
{
    request = conn_request;
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    ep_status = status;
}

static ucp_ep_h open_ep(ucp_ep_params_t *params)
{
    ucp_ep_h ep;

    params->field_mask     |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                              UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params->err_mode        = UCP_ERR_HANDLING_MODE_PEER;
    params->err_handler.cb  = on_error;
    check_status(ucp_ep_create(worker, params, &ep), "ucp_ep_create");
    return ep;
}

static void receive(const job_buffer_t *buffer)
{
    wait_for(ucp_tag_recv_nbx(worker, buffer->data, LENGTH, 0, 0, &no_params),
             "ucp_tag_recv_nbx");
    if ((job_pattern_mismatch(buffer->data, LENGTH, client_id) != LENGTH) ||
        (job_buffer_check(buffer) != 0)) {
        fail("data", "they are not what was sent");
    }
}

static void run_client(const ucs_sock_addr_t *addr)
{
    job_buffer_t sent      = job_buffer_alloc(LENGTH);
    job_buffer_t received  = job_buffer_alloc(LENGTH);
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR,
        .flags      = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER |
                      UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID,
        .sockaddr   = *addr
    };
    ucp_ep_h ep;

    job_pattern_fill(sent.data, LENGTH, client_id);
    ep = open_ep(&params);
    wait_for(ucp_tag_send_nbx(ep, sent.data, LENGTH, 0, &no_params),
             "ucp_tag_send_nbx");
    receive(&received);
    wait_for(ucp_ep_close_nbx(ep, &no_params), "ucp_ep_close_nbx");
}

static void run_server(const ucs_sock_addr_t *addr)
{
    job_buffer_t buffer          = job_buffer_alloc(LENGTH);
    ucp_listener_params_t listen = {
        .field_mask      = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
                           UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
        .sockaddr        = *addr,
        .conn_handler.cb = on_request
    };
    ucp_conn_request_attr_t attr = {
        .field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID
    };
    ucp_ep_params_t params       = {
        .field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST
    };
    ucs_status_ptr_t send;
    ucp_listener_h listener;
    ucp_ep_h ep;

    check_status(ucp_listener_create(worker, &listen, &listener),
                 "ucp_listener_create");
    while (request == NULL) {
        progress();
    }

    check_status(ucp_conn_request_query(request, &attr),
                 "ucp_conn_request_query");
    if (attr.client_id != client_id) {
        fail("client", "it has another id");
    }

    params.conn_request = request;
    ep                  = open_ep(&params);
    receive(&buffer);

    /* The client goes when it has its data back, maybe before we know that */
    send = ucp_tag_send_nbx(ep, buffer.data, LENGTH, 0, &no_params);
    if (UCS_PTR_IS_ERR(send)) {
        check_status(UCS_PTR_STATUS(send), "ucp_tag_send_nbx");
    }
    while (ep_status == UCS_OK) {
        progress();
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in in              = {.sin_family = AF_INET};
    const ucs_sock_addr_t addr         = {
        .addr    = (const struct sockaddr*)&in,
        .addrlen = sizeof(in)
    };
    const ucp_params_t params          = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG
    };
    const ucp_worker_params_t w_params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_CLIENT_ID,
        .client_id  = client_id
    };
    ucp_context_h context;

    if ((argc < 2) || (argc > 3) ||
        ((argc == 3) && (inet_pton(AF_INET, argv[2], &in.sin_addr) != 1))) {
        fprintf(stderr, "usage: listener PORT [ADDRESS]\n");
        return EXIT_FAILURE;
    }

    in.sin_port = htons(atoi(argv[1]));
    name        = (argc == 3) ? "client" : "server";
    deadline    = time(NULL) + PATIENCE;
    check_status(ucp_init(&params, NULL, &context), "ucp_init");
    check_status(ucp_worker_create(context, &w_params, &worker),
                 "ucp_worker_create");
    if (argc == 3) {
        run_client(&addr);
    } else {
        run_server(&addr);
    }

    printf("OK listener: %s\n", name);
    return EXIT_SUCCESS;
}
