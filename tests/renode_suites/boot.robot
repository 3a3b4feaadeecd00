*** Settings ***
Documentation     The firmware starts, and starts anew when it is told to.
Resource          trebuchet.resource
Test Setup        Board
Test Teardown     Test Teardown

*** Test Cases ***
Boots To Ready
    Boot

Says What It Is
    Start Emulation
    Wait For Line On Uart    Trebuchet .* on .*    treatAsRegex=true
    Wait For Line On Uart    mac .*, ip .*    treatAsRegex=true
    Wait For Line On Uart    tcp: [0-9]+ sessions    treatAsRegex=true
    Wait For Line On Uart    ready

Starts Anew After A Reset By The Control Register
    Boot
    Write Word    ctrl    0    1
    Wait For Line On Uart    Trebuchet .* on .*    treatAsRegex=true
    Wait For Line On Uart    ready

Keeps Its RAM And Its Program Over A Reset
    Boot
    Write Word    main_ram    ${RAM}    0xC0FFEE
    Write Word    ctrl    0    2
    Wait For Line On Uart    ready
    Word Should Be    main_ram    ${RAM}    0xC0FFEE

Has Its Addresses In The Shell's Registers
    Boot
    Register Should Be    shell    enable    1
    Register Should Be    shell    ip    0xC0000202
